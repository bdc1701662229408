use prescient_schema::State;

#[derive(State)]
struct Car {
    name: String,
}

fn main() {}
