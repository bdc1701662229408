//! What a client shows, for programs whose types are known only when they run, and for views of the
//! program's own.

use prescient_replication::{EntityHandle, ShowsEntities, Tick};
use prescient_schema::{Content, State};

use crate::client::Client;

/// Lets [`Views`](crate::Views) follow a client.
///
/// ```
/// use prescient::{
///     Change, ClientEvent, EntityHandle, Everything, Factory, Schema, Server, ShowsEntities, State,
///     Views,
/// };
///
/// #[derive(State)]
/// struct Car {
///     #[state(step = 0.1)]
///     speed: f32,
/// }
///
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
/// /// Any client will do: also the view of a spectator.
/// fn play(sounds: &mut Views<Sounds>, change: &Change, client: &impl ShowsEntities) {
///     sounds.follow(change, client);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut server = Server::offline(Schema::of::<Car>()?, Everything)?;
/// let mut client = server.local_client();
/// let mut sounds = Views::new(Sounds);
/// server.step()?.spawn(&Car { speed: 2.5 })?;
/// server.send();
/// while let Some(event) = client.poll() {
///     if let ClientEvent::Change(change) = event {
///         play(&mut sounds, &change, &client);
///     }
/// }
/// let (car, _) = client.all::<Car>().next().expect("it is visible");
/// *sounds.get_mut(car).expect("it has a sound") += 0.5; // the game's own part of it
/// assert_eq!(sounds.get(car), Some(&3.0));
/// let _: &mut Sounds = sounds.factory();
/// # Ok(())
/// # }
/// ```
impl ShowsEntities for Client {
    fn get<T: State>(&self, entity: EntityHandle) -> Option<T> {
        self.get(entity)
    }
}

impl Client {
    /// The name of an entity's type; `None` if it is gone.
    ///
    /// With [`row`](Self::row) it lets a program show worlds whose types it does not have, such as a
    /// dashboard:
    ///
    /// ```
    /// # use prescient::{Everything, Schema, Server, State};
    /// # #[derive(State)]
    /// # struct Car { #[state(step = 0.1)] speed: f32, #[state(max_len = 8)] driver: String }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut server = Server::offline(Schema::of::<Car>()?, Everything)?;
    /// # let mut client = server.local_client();
    /// # server.step()?.spawn(&Car { speed: 2.5, driver: "Ada".into() })?;
    /// # server.send();
    /// # while client.poll().is_some() {}
    /// for entity in client.entities() {
    ///     assert_eq!(client.type_name(entity), Some("Car"));
    ///     let row = client.row(entity, 0).expect("it is visible");
    ///     assert_eq!(row[0], 25); // in steps of 0.1
    ///     assert!(client.content(row[1]).is_some()); // the driver's name
    /// }
    /// assert_eq!(client.complete_tick(), client.tick());
    /// # Ok(())
    /// # }
    /// ```
    pub fn type_name(&self, entity: EntityHandle) -> Option<&str> {
        self.view().type_name(entity)
    }

    /// An entity's row in the table with this index, with the columns of the server's schema;
    /// `None` if that table is not visible.
    pub fn row(&self, entity: EntityHandle, table: usize) -> Option<&[i64]> {
        self.view().row(entity, table)
    }

    /// Resolves a container's cell in a [`row`](Self::row) to its content.
    pub fn content(&self, cell: i64) -> Option<&Content> {
        self.view().content(cell)
    }

    /// The newest tick whose whole visible state was received; older than [`tick`](Self::tick) if
    /// packets are too small for everything.
    pub fn complete_tick(&self) -> Option<Tick> {
        self.view().complete_tick()
    }
}
