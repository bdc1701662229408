use prescient_schema::State;

#[derive(State)]
struct Walker {
    #[state(table, position)]
    x: Option<u8>,
}

fn main() {}
