use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(bytes)]
    laps: Vec<u32>,
}

fn main() {}
