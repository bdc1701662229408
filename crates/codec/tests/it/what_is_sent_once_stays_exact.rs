//! Fields that are only sent on spawn stay exact when the precision of an entity changes: they are
//! never sent again, and both ends have to agree on the receiver's values.

use crate::pair::{Pair, int};
use prescient_schema::{Class, Level, Priority};

#[test]
fn a_coarser_level_leaves_it_alone() {
    let mut born = int("born", 16);
    born.only_on_spawn = true;
    let mut fine = int("fine", 16);
    for field in [&mut born, &mut fine] {
        field.priority = Priority::new(1).unwrap();
        field.coarser = [0, 2, 4, 6];
    }
    let mut pair = Pair::new(Class::new("thing", vec![born, fine]), &[&[1001, 1001]]);
    pair.exchange(None);
    for time in 0..180 {
        let level = Level::new((time / 90) as u8 * 2).unwrap();
        let slot = prescient_codec::Slot(0);
        pair.encoder.set_level(slot, level, &pair.archive);
        pair.capture([(0, &[1001, 1001 + time][..])]);
        pair.exchange(None);
        assert_eq!(pair.shown(0)[0], 1001);
    }
}
