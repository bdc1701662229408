use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = 0.1, step = 0.2)]
    x: f32,
}

fn main() {}
