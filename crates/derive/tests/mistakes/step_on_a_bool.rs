use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = 0.1)]
    on: bool,
}

fn main() {}
