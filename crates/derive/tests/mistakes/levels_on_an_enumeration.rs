use prescient_schema::State;

#[derive(State)]
enum Gear {
    Forward,
}

#[derive(State)]
struct Car {
    #[state(levels(0, 1, 2, 3))]
    gear: Gear,
}

fn main() {}
