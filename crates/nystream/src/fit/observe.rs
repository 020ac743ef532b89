//! How a long computation tells its caller how far it is.

/// Told about progress; the library itself prints nothing.
pub trait Observer {
    /// A new stage begins, with a name for people.
    fn stage(&mut self, name: &str);
    /// `rows` more rows have been read in this stage; `fraction` of it is done, where that is known.
    fn rows(&mut self, rows: u64, fraction: Option<f64>);
}

/// An observer that does not look.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn stage(&mut self, _name: &str) {}
    fn rows(&mut self, _rows: u64, _fraction: Option<f64>) {}
}
