//! The `nystream` command from outside: bad input, round trips, options, accuracy.

mod accuracy;
mod arrow;
mod bad_data;
mod bad_models;
mod bad_options;
mod dictionaries;
mod files;
mod inspecting;
mod learners;
mod merging;
mod options;
mod output;
mod reproduce;
mod round_trips;
mod sketches;
mod stream_rows;
mod streams;
mod support;
mod unusual_data;
