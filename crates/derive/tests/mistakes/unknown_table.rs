use prescient_schema::State;

#[derive(State)]
#[state(tables(public, private))]
struct Car {
    #[state(tables(secret))]
    x: i32,
}

fn main() {}
