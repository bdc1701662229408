use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = 0.1, float((10, 5, 15)))]
    x: f32,
}

fn main() {}
