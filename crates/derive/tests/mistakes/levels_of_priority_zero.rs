use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(priority = 0, levels(0, 1, 2, 3))]
    x: i32,
}

fn main() {}
