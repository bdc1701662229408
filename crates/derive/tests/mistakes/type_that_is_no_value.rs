use prescient_schema::State;

#[derive(State)]
struct Car {
    race: std::time::Duration,
}

fn main() {}
