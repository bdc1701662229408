use prescient_schema::State;

#[derive(State)]
struct Walker {
    #[state(table)]
    keys: u8,
}

fn main() {}
