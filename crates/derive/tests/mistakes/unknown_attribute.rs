use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(stp = 0.1)]
    x: f32,
}

fn main() {}
