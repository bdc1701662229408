//! The entities of a body, and what they are predicted from.

use super::PastBuffers;
use crate::{
    entity::Subject,
    history::Window,
    past::{Past, follow_contract},
    population::Entity,
    predict::{Plan, Samples},
    twin::{Book, EntityKey, Head, Rows},
};

pub(super) fn subject<'a>(book: &Book, id: u32, entity: &'a Entity) -> Subject<'a> {
    let Head { class, level, .. } = entity.head;
    Subject {
        id,
        class,
        level,
        woken: false,
        behind: book.folds_since_surprise(&entity.head),
        states: &entity.fields,
    }
}

/// An entity that was at rest.
pub(super) fn sleeper(book: &Book, id: u32) -> Subject<'static> {
    let seat = book.population.seat(id);
    Subject {
        id,
        class: seat.class,
        level: seat.level,
        woken: true,
        behind: 0,
        states: &[],
    }
}

/// What an active entity is predicted from, and its newest row if that was at hand.
#[inline]
pub(super) fn past<'a, 's: 'a>(
    book: &'a Book,
    (id, head): (u32, &Head),
    side: &'s (impl Rows + ?Sized),
    (samples, plan): (&Samples, &'a Plan),
    buffers: &'a mut PastBuffers,
    window: &mut Window<'s>,
) -> Option<(Past<'a>, Option<&'a [i64]>)> {
    let class = &book.layout.classes[usize::from(head.class)];
    let key = EntityKey {
        id,
        class: head.class,
    };
    let views = side.rows(key, samples, head.level, &mut buffers.rows, window)?;
    let mut past = Past {
        class,
        plan,
        rows: views.rows,
        contract: &[],
        kept: &[],
    };
    if class.has_contract
        && let Some(contract) = &book.layout.schema.classes[usize::from(head.class)].contract
    {
        let newest = past.newest();
        follow_contract(contract, class, newest, plan.ahead, &mut buffers.contract);
        past.contract = &buffers.contract;
    }
    Some((past, views.present))
}

/// The past of an entity at rest: it held one row.
pub(super) fn rest_past<'a>(
    book: &'a Book,
    id: u32,
    side: &'a dyn Rows,
    buffers: &'a mut PastBuffers,
) -> Option<Past<'a>> {
    let class = book.population.seat(id).class;
    let class = &book.layout.classes[usize::from(class)];
    let row = book.rest_row(id, side, &mut buffers.rows[0])?;
    let mut past = Past::resting(class, row);
    if let Some(rest) = book.rest_rows.get(&id) {
        past.kept = rest.contents();
    }
    Some(past)
}
