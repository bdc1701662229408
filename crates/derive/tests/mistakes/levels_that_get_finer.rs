use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(levels(0, 3, 2, 1))]
    x: i32,
}

fn main() {}
