use prescient_schema::State;

#[derive(State)]
#[state(predict_with = forward)]
struct Car {
    x: i32,
}

fn forward(car: &Car) -> Car {
    Car { x: car.x }
}

fn main() {}
