use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(priority = 4)]
    x: i32,
}

fn main() {}
