//! The shapes of networks, and the shortest paths in them.

use std::collections::BTreeMap;
use std::path::Path;

/// A network of players and routers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Graph {
    /// Names of the nodes. The first ones are those of players.
    pub(crate) nodes: Vec<String>,
    pub(crate) players: usize,
    pub(crate) links: Vec<Link>,
}

/// A link between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) ends: [usize; 2],
    /// The time in each direction, in milliseconds.
    pub(crate) delay: f64,
    /// The most that a packet takes longer, in milliseconds; packets stay in order.
    pub(crate) jitter: f64,
    /// The share of packets that are lost, in percent.
    pub(crate) loss: f64,
}

/// Why there is no such network.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// The file cannot be read.
    #[error("{path}: {error}; give linear, square, tree, dumbbell, scale16 or a file")]
    File {
        /// The file.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
    /// A line of the file is not understood.
    #[error(
        "line {line}: expected `player NAME`, `router NAME` or `link NAME NAME [delay=MS] [jitter=MS] [loss=PERCENT]`"
    )]
    Line {
        /// Its number.
        line: usize,
    },
    /// Not every node can be reached, or there are too few or too many players.
    #[error("{0}")]
    Unusable(String),
}

/// The default link: one within a city.
const DELAY: f64 = 2.0;
const JITTER: f64 = 4.0;

/// The most nodes of a network.
const MAX_NODES: usize = 1024;

impl Graph {
    /// A network by its name or from a file, with the number of players that is given or the usual one.
    pub(crate) fn named(name: &str, players: Option<u32>) -> Result<Self, GraphError> {
        let count = |usual: u32| players.unwrap_or(usual) as usize;
        let graph = match name {
            "linear" => Self::linear(count(2)),
            "square" => Self::square(count(4)),
            "tree" => Self::tree(count(4)),
            "dumbbell" => Self::dumbbell(count(4)),
            "scale16" => Self::scale(count(16)),
            path => {
                if players.is_some() {
                    return Err(GraphError::Unusable(
                        "a file says which players there are; leave --players out".into(),
                    ));
                }
                let text = std::fs::read_to_string(Path::new(path));
                let text = text.map_err(|error| GraphError::File {
                    path: path.to_owned(),
                    error,
                })?;
                Self::parse(&text)?
            }
        };
        graph.check()
    }

    /// Players in a row, without routers.
    fn linear(players: usize) -> Self {
        let mut graph = Self::of_players(players);
        (1..players).for_each(|player| graph.link(player - 1, player));
        graph
    }

    /// Players in a ring, without routers.
    fn square(players: usize) -> Self {
        let mut graph = Self::linear(players);
        if players > 2 {
            graph.link(players - 1, 0);
        }
        graph
    }

    /// Two players behind each router at the leaves of a binary tree of routers.
    fn tree(players: usize) -> Self {
        let mut graph = Self::of_players(players);
        let mut row: Vec<usize> = (0..players).collect();
        while row.len() > 1 {
            let pairs: Vec<Vec<usize>> = row.chunks(2).map(<[usize]>::to_vec).collect();
            row = pairs.iter().map(|pair| graph.router(pair)).collect();
        }
        graph
    }

    /// Two routers with a link between them, and half of the players behind each.
    fn dumbbell(players: usize) -> Self {
        let mut graph = Self::of_players(players);
        let all: Vec<usize> = (0..players).collect();
        let (left, right) = all.split_at(players / 2);
        let ends = [left, right].map(|half| graph.router(half));
        graph.link(ends[0], ends[1]);
        graph
    }

    /// Four routers in a square, or a square lattice of one router for every 16 players, with as many players
    /// behind each.
    fn scale(players: usize) -> Self {
        let mut graph = Self::of_players(players);
        let side = ((players as f64 / 16.0).sqrt().ceil() as usize).max(2);
        let routers = side * side;
        let all: Vec<usize> = (0..players).collect();
        let first = players;
        for router in 0..routers {
            let from = players * router / routers;
            let to = players * (router + 1) / routers;
            graph.router(&all[from..to]);
        }
        for row in 0..side {
            for column in 0..side {
                let at = first + row * side + column;
                if column + 1 < side {
                    graph.link(at, at + 1);
                }
                if row + 1 < side {
                    graph.link(at, at + side);
                }
            }
        }
        graph
    }

    fn of_players(players: usize) -> Self {
        let letter = |player: usize| char::from(b'A' + (player % 26) as u8);
        let name = |player| match players {
            0..=26 => letter(player).to_string(),
            _ => format!("p{player}"),
        };
        Self {
            nodes: (0..players).map(name).collect(),
            players,
            links: Vec::new(),
        }
    }

    /// Adds a router with links to some nodes.
    fn router(&mut self, below: &[usize]) -> usize {
        let router = self.nodes.len();
        self.nodes.push(format!("r{}", router - self.players + 1));
        below.iter().for_each(|node| self.link(router, *node));
        router
    }

    fn link(&mut self, one: usize, other: usize) {
        self.links.push(Link {
            ends: [one, other],
            delay: DELAY,
            jitter: JITTER,
            loss: 0.0,
        });
    }

    /// Reads a file: one node or link per line; `#` starts a comment.
    fn parse(text: &str) -> Result<Self, GraphError> {
        let (mut players, mut routers, mut links) = (Vec::new(), Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let wrong = GraphError::Line { line: number + 1 };
            match words.as_slice() {
                [] => {}
                ["player", name] => players.push((*name).to_owned()),
                ["router", name] => routers.push((*name).to_owned()),
                ["link", one, other, settings @ ..] => {
                    links.push((*one, *other, settings.to_vec(), number + 1));
                }
                _ => return Err(wrong),
            }
        }
        let count = players.len();
        let nodes: Vec<String> = players.into_iter().chain(routers).collect();
        let places: BTreeMap<&str, usize> = nodes
            .iter()
            .enumerate()
            .map(|(place, name)| (name.as_str(), place))
            .collect();
        if places.len() < nodes.len() {
            return Err(GraphError::Unusable("two nodes have the same name".into()));
        }
        let read = |(one, other, settings, line): &(&str, &str, Vec<&str>, usize)| {
            let wrong = || GraphError::Line { line: *line };
            let place = |name: &str| places.get(name).copied().ok_or_else(wrong);
            let mut link = Link {
                ends: [place(one)?, place(other)?],
                delay: DELAY,
                jitter: JITTER,
                loss: 0.0,
            };
            for setting in settings {
                let (key, value) = setting.split_once('=').ok_or_else(wrong)?;
                let value: f64 = value.parse().map_err(|_| wrong())?;
                if !(0.0..=60_000.0).contains(&value) {
                    return Err(wrong());
                }
                match key {
                    "delay" => link.delay = value,
                    "jitter" => link.jitter = value,
                    "loss" => link.loss = value,
                    _ => return Err(wrong()),
                }
            }
            Ok(link)
        };
        let links = links.iter().map(read).collect::<Result<Vec<Link>, _>>()?;
        drop(places);
        Ok(Self {
            nodes,
            players: count,
            links,
        })
    }

    /// Whether players have links to routers only.
    pub(crate) fn players_are_leaves(&self) -> bool {
        let mut links = self.links.iter();
        links.all(|link| link.ends.iter().any(|end| *end >= self.players))
    }

    fn check(self) -> Result<Self, GraphError> {
        let unusable = |why: &str| Err(GraphError::Unusable(why.to_owned()));
        if self.players < 2 {
            return unusable("a game needs at least two players");
        }
        if self.nodes.len() > MAX_NODES {
            return unusable("a network has at most 1024 nodes");
        }
        if self.links.iter().any(|link| link.ends[0] == link.ends[1]) {
            return unusable("a link needs two different ends");
        }
        let towards = self.next_hops(0);
        if towards.iter().skip(1).any(Option::is_none) {
            return unusable("not every node can be reached from every other");
        }
        Ok(self)
    }

    /// For every node the link on its shortest path to `target`; `None` for the target and where there is none.
    pub(crate) fn next_hops(&self, target: usize) -> Vec<Option<usize>> {
        let mut nearest: Vec<Option<f64>> = vec![None; self.nodes.len()];
        let mut hops = vec![None; self.nodes.len()];
        let mut is_final = vec![false; self.nodes.len()];
        nearest[target] = Some(0.0);
        loop {
            let open = (0..self.nodes.len()).filter(|node| !is_final[*node]);
            let open = open.filter_map(|node| Some((nearest[node]?, node)));
            let Some((cost, node)) = open.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                return hops;
            };
            is_final[node] = true;
            for (place, link) in self.links.iter().enumerate() {
                let [one, other] = link.ends;
                let neighbour = match node {
                    _ if node == one => other,
                    _ if node == other => one,
                    _ => continue,
                };
                let through = cost + link.delay + link.jitter / 2.0 + 0.01;
                if nearest[neighbour].is_none_or(|known| through < known) {
                    nearest[neighbour] = Some(through);
                    hops[neighbour] = Some(place);
                }
            }
        }
    }

    /// The node from which all players are nearest: a router if there is one.
    pub(crate) fn centre(&self) -> usize {
        let candidates = match self.players < self.nodes.len() {
            true => self.players..self.nodes.len(),
            false => 0..self.nodes.len(),
        };
        let cost = |node: usize| {
            let hops = self.next_hops(node);
            let length = |from: usize| self.path(from, &hops).len();
            (0..self.players).map(length).sum::<usize>()
        };
        candidates.min_by_key(|node| cost(*node)).unwrap_or(0)
    }

    /// The links from a node to the target of `hops`, each with the end at which it is entered.
    pub(crate) fn path(&self, from: usize, hops: &[Option<usize>]) -> Vec<(usize, usize)> {
        let mut path = Vec::new();
        let mut node = from;
        while let Some(link) = hops[node] {
            let ends = self.links[link].ends;
            let end = usize::from(ends[1] == node);
            path.push((link, end));
            node = ends[1 - end];
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str, players: Option<u32>) -> (usize, usize, usize) {
        let graph = Graph::named(name, players).expect("a known shape");
        (
            graph.players,
            graph.nodes.len() - graph.players,
            graph.links.len(),
        )
    }

    /// Fails if a shape gets another router or link.
    #[test]
    fn shapes_are_those_of_the_document() {
        assert_eq!(shape("linear", None), (2, 0, 1));
        assert_eq!(shape("square", None), (4, 0, 4));
        assert_eq!(shape("tree", None), (4, 3, 6));
        assert_eq!(shape("dumbbell", None), (4, 2, 5));
        assert_eq!(shape("scale16", None), (16, 4, 20));
        assert_eq!(shape("scale16", Some(256)), (256, 16, 280));
        assert!(Graph::named("linear", Some(1)).is_err());
    }

    /// Fails if paths do not end at their target, or are not the shortest.
    #[test]
    fn paths_are_the_shortest() {
        let text = "player A\nplayer B\nrouter R # the middle\nlink A R delay=1\nlink R B delay=1\nlink A B delay=30";
        let graph = Graph::parse(text).and_then(Graph::check).expect("sound");
        let hops = graph.next_hops(1);
        assert_eq!(graph.path(0, &hops), [(0, 0), (1, 0)]);
        assert_eq!(graph.centre(), 2);
        for wrong in [
            "link A B",
            "player A\nplayer A",
            "player A\nplayer B",
            "x",
            "player A\nplayer B\nlink A B delay=x",
        ] {
            assert!(
                Graph::parse(wrong).and_then(Graph::check).is_err(),
                "{wrong}"
            );
        }
    }
}
