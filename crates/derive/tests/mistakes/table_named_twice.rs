use prescient_schema::State;

#[derive(State)]
#[state(tables(public, shield))]
struct Walker {
    x: u8,
    #[state(table)]
    shield: Option<u8>,
}

fn main() {}
