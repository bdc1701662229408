use prescient_schema::State;

#[derive(State)]
struct Walker {
    #[state(keys, only_on_spawn)]
    keys: u32,
}

fn main() {}
