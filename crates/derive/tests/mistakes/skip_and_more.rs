use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(skip, priority = 1)]
    x: i32,
}

fn main() {}
