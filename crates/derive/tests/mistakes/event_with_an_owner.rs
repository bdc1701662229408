use prescient_schema::Event;

#[derive(Event)]
struct Kill {
    #[event(owner)]
    killer: u8,
}

fn main() {}
