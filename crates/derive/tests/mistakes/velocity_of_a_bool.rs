use prescient_schema::State;

#[derive(State)]
struct Car {
    x: i32,
    #[state(velocity_of = "x", per_tick)]
    v: bool,
}

fn main() {}
