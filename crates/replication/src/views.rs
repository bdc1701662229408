//! Keeps the program's own views in sync with the entities that a client shows.

use std::collections::BTreeMap;

use prescient_schema::State;

use crate::client::{Change, Client, EntityHandle};

/// Creates the program's own view of every entity of a type: a sprite, a sound, an entity of an
/// engine.
pub trait Factory {
    /// The type of the entities.
    type State: State;
    /// The program's view of an entity.
    type View;

    /// An entity appeared.
    fn create(&mut self, entity: EntityHandle, state: Self::State) -> Self::View;

    /// An entity changed.
    fn update(&mut self, view: &mut Self::View, state: Self::State);

    /// An entity was removed.
    fn remove(&mut self, view: Self::View) {
        drop(view);
    }
}

/// A client that shows entities.
pub trait ShowsEntities {
    /// An entity's value in its first table; `None` if it has another type or is gone.
    fn get<T: State>(&self, entity: EntityHandle) -> Option<T>;
}

impl ShowsEntities for Client {
    fn get<T: State>(&self, entity: EntityHandle) -> Option<T> {
        self.get(entity)
    }
}

/// The views that a [`Factory`] created, by entity.
///
/// ```
/// # use prescient_replication::*;
/// # use prescient_schema::State;
/// # #[derive(State)]
/// # struct Car { #[state(step = 0.1)] speed: f32 }
/// struct Sounds;
///
/// impl Factory for Sounds {
///     type State = Car;
///     type View = f32;
///
///     fn create(&mut self, _: EntityHandle, car: Car) -> f32 {
///         car.speed
///     }
///
///     fn update(&mut self, pitch: &mut f32, car: Car) {
///         *pitch = car.speed;
///     }
/// }
///
/// fn listen(client: &mut Client, sounds: &mut Views<Sounds>) {
///     while let Some(change) = client.poll_change() {
///         sounds.follow(&change, client);
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct Views<F: Factory> {
    factory: F,
    views: BTreeMap<EntityHandle, F::View>,
}

impl<F: Factory> Views<F> {
    /// Without any views.
    pub fn new(factory: F) -> Self {
        Self {
            factory,
            views: BTreeMap::new(),
        }
    }

    /// Applies a change; changes of entities of other types are ignored.
    pub fn follow(&mut self, change: &Change, client: &impl ShowsEntities) {
        match *change {
            Change::Created(entity) | Change::Updated(entity) => {
                let Some(state) = client.get(entity) else {
                    return;
                };
                match self.views.get_mut(&entity) {
                    Some(view) => self.factory.update(view, state),
                    None => {
                        let view = self.factory.create(entity, state);
                        self.views.insert(entity, view);
                    }
                }
            }
            Change::Removed(entity) => {
                if let Some(view) = self.views.remove(&entity) {
                    self.factory.remove(view);
                }
            }
            Change::TableAdded { .. }
            | Change::TableRemoved { .. }
            | Change::Typed(_)
            | Change::Question(_)
            | Change::Reply(_)
            | Change::Entered
            | Change::AuthorityChanged { .. }
            | Change::Event { .. } => {}
        }
    }

    /// The view of an entity.
    pub fn get(&self, entity: EntityHandle) -> Option<&F::View> {
        self.views.get(&entity)
    }

    /// The view of an entity.
    pub fn get_mut(&mut self, entity: EntityHandle) -> Option<&mut F::View> {
        self.views.get_mut(&entity)
    }

    /// All views, in the order of their entity handles.
    pub fn iter(&self) -> impl Iterator<Item = (EntityHandle, &F::View)> {
        self.views.iter().map(|(&entity, view)| (entity, view))
    }

    /// The factory.
    pub fn factory(&mut self) -> &mut F {
        &mut self.factory
    }
}
