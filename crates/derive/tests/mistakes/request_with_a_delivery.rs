use prescient_schema::Event;

#[derive(Event)]
#[event(answer = Bought, unreliable)]
struct Buy;

#[derive(Event)]
struct Bought;

fn main() {}
