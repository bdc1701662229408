use prescient_schema::State;

#[derive(State)]
struct Walker {
    #[state(keys)]
    left: u8,
    #[state(keys)]
    right: u8,
}

fn main() {}
