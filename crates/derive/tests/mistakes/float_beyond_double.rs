use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(float((10, 11, 3000)))]
    x: f32,
}

fn main() {}
