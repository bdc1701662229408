//! The content store: which Interests it answers, and which entries it evicts.

use std::time::Duration;

use crate::common::*;
use prescient_named::*;
use prescient_tests::seeds::over_seeds;

/// A node with a consumer and a producer for all names.
struct Shop {
    world: World,
    node: usize,
    producer: App,
    consumer: App,
    nonce: u32,
}

impl Shop {
    fn new(config: ForwarderConfig) -> Self {
        let mut world = World::default();
        let node = world.node_with(config);
        let (producer, consumer) = (world.app(node), world.app(node));
        world.route(node, "/", producer.face, 0);
        Self {
            world,
            node,
            producer,
            consumer,
            nonce: 0,
        }
    }

    /// The consumer requests a name, and the producer answers.
    fn fill(&mut self, text: &str, content: &[u8], freshness: Duration) {
        self.nonce += 1;
        self.world.ask(self.consumer, text, self.nonce);
        self.world.answer(self.producer, text, content, freshness);
        self.world.heard(self.producer);
        self.world.heard(self.consumer);
    }

    /// The store's answer.
    fn look<'a>(
        &mut self,
        text: &str,
        change: impl FnOnce(InterestBuilder<'a>) -> InterestBuilder<'a>,
    ) -> Option<Heard> {
        self.nonce += 1;
        let packet = interest(text, self.nonce, |it| change(it).lifetime(Duration::ZERO));
        self.world.send(self.consumer, &packet);
        let asked = self.world.heard(self.producer).len();
        let mut heard = self.world.heard(self.consumer);
        assert_eq!(asked + heard.len(), 1, "from the store or not");
        self.world.run(Duration::from_micros(1));
        heard.pop()
    }
}

/// Fails if Data is fresh for ever, for a moment too long or not at all (`fresh_until >= now`), or if
/// stale Data does not answer an Interest without MustBeFresh.
#[test]
fn fresh_means_fresh() {
    let mut shop = Shop::new(ForwarderConfig::default());
    shop.fill("/anna/1", b"x", 20 * MS);
    shop.world.run(20 * MS - Duration::from_micros(1));
    let found = Some(told("/anna/1", b"x"));
    assert_eq!(shop.look("/anna/1", |it| it.must_be_fresh()), found);
    assert_eq!(shop.look("/anna/1", |it| it.must_be_fresh()), None);
    assert_eq!(shop.look("/anna/1", |it| it), found);
    shop.world.run(Duration::from_secs(3600));
    assert_eq!(shop.look("/anna/1", |it| it), found);
    // Data without a freshness period is never fresh.
    shop.fill("/ben/1", b"x", Duration::ZERO);
    assert_eq!(shop.look("/ben/1", |it| it.must_be_fresh()), None);
    // Data that arrives again is fresh again.
    shop.nonce += 1;
    let packet = interest("/anna/1", shop.nonce, |it| it.must_be_fresh());
    shop.world.send(shop.consumer, &packet);
    shop.world.answer(shop.producer, "/anna/1", b"y", 20 * MS);
    shop.world.heard(shop.consumer);
    shop.world.heard(shop.producer);
    let found = Some(told("/anna/1", b"y"));
    assert_eq!(shop.look("/anna/1", |it| it.must_be_fresh()), found);
    assert_eq!(shop.world.nodes[shop.node].statistics().stored, 2);
}

/// Fails if a longer name answers an exact Interest, if a shorter one answers any, or if the store does
/// not answer with the newest of several.
#[test]
fn longer_names_answer_who_takes_them() {
    let mut shop = Shop::new(ForwarderConfig::default());
    for version in [9, 255, 70, 300] {
        let content = version.to_string();
        shop.fill(
            &format!("/anna/sync/v={version}"),
            content.as_bytes(),
            20 * MS,
        );
    }
    shop.fill("/anna/synchronous", b"no component of it", 20 * MS);
    shop.fill("/annb", b"", 20 * MS);
    assert_eq!(shop.look("/anna/sync", |it| it), None);
    assert_eq!(
        shop.look("/anna/sync/v=9/more", |it| it.can_be_prefix()),
        None
    );
    let newest = Some(told("/anna/sync/v=300", b"300"));
    assert_eq!(shop.look("/anna/sync", |it| it.can_be_prefix()), newest);
    assert_eq!(
        shop.look("/anna/sync/v=9", |it| it.can_be_prefix()),
        Some(told("/anna/sync/v=9", b"9"))
    );
    // With MustBeFresh: the newest that is fresh.
    shop.world.run(20 * MS);
    shop.fill("/anna/sync/v=80", b"80", 20 * MS);
    assert_eq!(
        shop.look("/anna/sync", |it| it.can_be_prefix().must_be_fresh()),
        Some(told("/anna/sync/v=80", b"80"))
    );
    let newest = Some(told("/anna/sync/v=80", b"80"));
    assert_eq!(shop.look("/anna/sync", |it| it.can_be_prefix()), newest);
    // Data that arrives again is the newest.
    shop.world.run(20 * MS);
    shop.nonce += 1;
    let packet = interest("/anna/sync/v=9", shop.nonce, |it| it.must_be_fresh());
    shop.world.send(shop.consumer, &packet);
    shop.world
        .answer(shop.producer, "/anna/sync/v=9", b"new", 20 * MS);
    shop.world.heard(shop.consumer);
    shop.world.heard(shop.producer);
    let newest = Some(told("/anna/sync/v=9", b"new"));
    assert_eq!(shop.look("/anna/sync", |it| it.can_be_prefix()), newest);
}

/// Fails if a name is compared by bytes rather than by components.
#[test]
fn prefixes_end_with_a_component() {
    let mut shop = Shop::new(ForwarderConfig::default());
    shop.fill("/%FF/%FF%FF/1", b"x", MS);
    let found = Some(told("/%FF/%FF%FF/1", b"x"));
    assert_eq!(shop.look("/%FF/%FF%FF", |it| it.can_be_prefix()), found);
    assert_eq!(shop.look("/%FF", |it| it.can_be_prefix()), found);
    assert_eq!(shop.look("/%FE", |it| it.can_be_prefix()), None);
    assert_eq!(shop.look("/%FF/%FF", |it| it.can_be_prefix()), None);
}

/// Fails if an entry that was used recently is evicted before one that was not (`find` without moving the
/// entry), if nothing is evicted, or if replacing leaves the old entry.
#[test]
fn what_was_used_least_recently_makes_room() {
    let packet = data("/anna/0", &[0; 100], MS).len();
    let room = 10 * (packet + 192 + 2 * 64);
    let mut shop = Shop::new(ForwarderConfig::default().max_store_bytes(room));
    for number in 0..10 {
        shop.fill(&format!("/anna/{number}"), &[number; 100], MS);
    }
    let statistics = shop.world.nodes[shop.node].statistics();
    assert_eq!((statistics.stored, statistics.stored_bytes), (10, room));
    // The oldest is used, then another one arrives.
    assert!(shop.look("/anna/0", |it| it).is_some());
    shop.fill("/anna/a", &[0; 100], MS);
    assert!(shop.look("/anna/0", |it| it).is_some());
    assert_eq!(shop.look("/anna/1", |it| it), None);
    for number in 2..10 {
        assert!(shop.look(&format!("/anna/{number}"), |it| it).is_some());
    }
    // A long one evicts several.
    shop.fill("/anna/b", &[0; 1000], MS);
    let statistics = shop.world.nodes[shop.node].statistics();
    assert!(statistics.stored < 10 && statistics.stored_bytes <= room);
    assert!(shop.look("/anna/9", |it| it).is_some());
    // One that is longer than the store evicts none.
    shop.fill("/anna/c", &[0; 8000], MS);
    assert_eq!(shop.look("/anna/c", |it| it), None);
    assert!(shop.look("/anna/9", |it| it).is_some());
    assert!(shop.look("/anna/b", |it| it).is_some());
}

/// Random inserts, evictions and lookups against a list that is searched from its end.
///
/// Fails if an entry stays in the list of a prefix after it was removed (`unlink_below` left out), or
/// leaves it early.
#[test]
fn the_store_agrees_with_a_simple_one() {
    over_seeds(20, |seed| {
        let room = 20 * (192 + 3 * 64 + 150);
        let mut shop = Shop::new(ForwarderConfig::default().max_store_bytes(room));
        let mut state = seed;
        let mut below = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        // Names by their last use, and by their arrival.
        let (mut used, mut arrived) = (Vec::new(), Vec::<String>::new());
        let mut hits = 0;
        for _ in 0..2000 {
            let text = format!("/{}/{}/{}", below(3), below(3), below(8));
            let prefix = text
                .rsplit_once('/')
                .expect("three components")
                .0
                .to_owned();
            let (asked, found) = if below(2) == 0 {
                let found = arrived.iter().rev().find(|name| {
                    name.starts_with(&prefix) && name.as_bytes()[prefix.len()] == b'/'
                });
                let found = found.cloned();
                (shop.look(&prefix, |it| it.can_be_prefix()), found)
            } else {
                let found = arrived.iter().find(|name| **name == text).cloned();
                (shop.look(&text, |it| it), found)
            };
            let expected = found.as_ref().map(|name| told(name, &[1; 50]));
            assert_eq!(asked, expected);
            match found {
                Some(name) => {
                    hits += 1;
                    used.retain(|other| *other != name);
                    used.push(name);
                }
                None => {
                    shop.fill(&text, &[1; 50], MS);
                    used.push(text.clone());
                    arrived.push(text);
                    while arrived.len() > shop.world.nodes[shop.node].statistics().stored {
                        let evicted = used.remove(0);
                        arrived.retain(|name| *name != evicted);
                    }
                }
            }
        }
        assert!(hits > 100 && arrived.len() > 10, "{hits} {}", arrived.len());
    });
}

/// Fails if a store of size 0 stores anything.
#[test]
fn a_store_may_be_left_out() {
    let mut shop = Shop::new(ForwarderConfig::default().max_store_bytes(0));
    shop.fill("/anna/1", b"x", MS);
    assert_eq!(shop.look("/anna/1", |it| it), None);
}

/// Stores answer after the producer has left, also the one at the nearer of two hops.
///
/// Fails if only the producer's own node stores Data.
#[test]
fn a_store_answers_for_a_producer_that_left() {
    let mut world = World::default();
    let (near, far) = (world.node(), world.node());
    let link = world.link(near, far, 10 * MS);
    let producer = world.app(far);
    let (first, second, third) = (world.app(near), world.app(near), world.app(far));
    world.route(near, "/anna", link.faces[0], 0);
    world.route(far, "/anna", producer.face, 0);
    world.ask(first, "/anna/1", 1);
    world.run(15 * MS);
    world.answer(producer, "/anna/1", b"x", MS);
    world.run(15 * MS);
    world.nodes[far].remove_face(producer.face);
    world.ask(second, "/anna/1", 2);
    world.ask(third, "/anna/1", 3);
    for app in [first, second, third] {
        assert_eq!(world.heard(app), [told("/anna/1", b"x")]);
    }
    assert_eq!(world.nodes[near].statistics().store_hits, 1);
    assert_eq!(world.nodes[far].statistics().store_hits, 1);
}
