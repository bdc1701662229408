use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(priority = 1, step = -0.5)]
    x: f32,
}

fn main() {}
