//! What play-out promises, with samples and times made up by hand.

mod bad_input_is_refused;
mod entities_are_drawn_between_samples;
mod inputs_are_buffered;
mod physics_is_rewound;
mod playback_follows_the_link;
mod predictions_are_reconciled;
