//! What the coder needs to know of an entity: its state in the shared model, and its past rows.

use super::PastBuffers;
use crate::{
    entity::CodedEntity,
    history::Window,
    past::{Past, run_contract},
    population::Entity,
    predict::{Plan, Samples},
    shared_model::{EntityKey, EntityStates, Head, Rows},
};

pub(super) fn coded_entity<'a>(
    entity_states: &EntityStates,
    id: u32,
    entity: &'a Entity,
) -> CodedEntity<'a> {
    let Head { class, level, .. } = entity.head;
    CodedEntity {
        id,
        class,
        level,
        woken: false,
        behind: entity_states.folds_since_surprise(&entity.head),
        states: &entity.fields,
    }
}

pub(super) fn resting_entity(entity_states: &EntityStates, id: u32) -> CodedEntity<'static> {
    let status = entity_states.population.status(id);
    CodedEntity {
        id,
        class: status.class,
        level: status.level,
        woken: true,
        behind: 0,
        states: &[],
    }
}

/// The rows from which an active entity is predicted, and its newest row if that is available.
#[inline]
pub(super) fn past<'a, 's: 'a>(
    entity_states: &'a EntityStates,
    (id, head): (u32, &Head),
    source: &'s (impl Rows + ?Sized),
    (samples, plan): (&Samples, &'a Plan),
    buffers: &'a mut PastBuffers,
    window: &mut Window<'s>,
) -> Option<(Past<'a>, Option<&'a [i64]>)> {
    let class = &entity_states.layout.classes[usize::from(head.class)];
    let key = EntityKey {
        id,
        class: head.class,
    };
    let state = &entity_states.classes[usize::from(head.class)];
    let views = source.rows(key, samples, head.level, &mut buffers.rows, window)?;
    let mut past = Past {
        class,
        plan,
        rows: views.rows,
        contract: &[],
        kept: &[],
        order: state.ranking.split(),
        relations: state.relations.adopted(),
    };
    if class.has_contract
        && let Some(contract) =
            &entity_states.layout.schema.classes[usize::from(head.class)].contract
    {
        let newest = past.newest();
        run_contract(contract, class, newest, plan.ahead, &mut buffers.contract);
        past.contract = &buffers.contract;
    }
    Some((past, views.present))
}

/// The past of an entity at rest: its only row.
pub(super) fn rest_past<'a>(
    entity_states: &'a EntityStates,
    id: u32,
    source: &'a dyn Rows,
    buffers: &'a mut PastBuffers,
) -> Option<Past<'a>> {
    let class = entity_states.population.status(id).class;
    let class = &entity_states.layout.classes[usize::from(class)];
    let row = entity_states.rest_row(id, source, &mut buffers.rows[0])?;
    let mut past = Past::resting(class, row);
    if let Some(rest) = entity_states.rest_rows.get(&id) {
        past.kept = rest.contents();
    }
    Some(past)
}
