//! Work on several cores, or on one without the feature `parallel`.

/// Calls `work` for every item.
pub(crate) fn for_each<T: Send>(items: Vec<T>, work: impl Fn(T) + Send + Sync) {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        items.into_par_iter().for_each(work);
    }
    #[cfg(not(feature = "parallel"))]
    items.into_iter().for_each(work);
}

/// The results of both.
pub(crate) fn join<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    #[cfg(feature = "parallel")]
    {
        rayon::join(one, other)
    }
    #[cfg(not(feature = "parallel"))]
    (one(), other())
}
