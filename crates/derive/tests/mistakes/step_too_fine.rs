use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = 1e-40)]
    x: f32,
}

fn main() {}
