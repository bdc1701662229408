use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(owner)]
    a: u8,
    #[state(owner)]
    b: u8,
}

fn main() {}
