//! Objects as typed constants: scalars, of which there is one, and columns, of which every row of a table has one.

use crate::{Oid, RowIndex, Syntax};

/// What may be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    ReadOnly,
    /// Read and written.
    ReadWrite,
    /// Read, written, and rows come and go by writing it.
    ReadCreate,
}

/// An object of which there is one: its instance ends in `.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its name in its MIB.
    pub name: &'static str,
    /// Its identifier, without the `.0`.
    pub oid: &'static [u32],
    /// What its value is.
    pub syntax: Syntax,
    /// What may be done with it.
    pub access: Access,
}

/// An object of which every row of a table has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in its MIB.
    pub name: &'static str,
    /// Its identifier; a row's index follows.
    pub oid: &'static [u32],
    /// What its values are.
    pub syntax: Syntax,
    /// What may be done with it.
    pub access: Access,
}

impl Scalar {
    /// The object of this name at `oid`, which does not end in the instance's `.0`.
    pub const fn new(name: &'static str, oid: &'static [u32], syntax: Syntax, access: Access) -> Self {
        Self { name, oid, syntax, access }
    }

    /// The identifier of its one instance.
    pub fn instance(&self) -> Oid {
        Oid::new(&[self.oid, &[0]].concat())
    }
}

impl Column {
    /// The identifier of a row's instance.
    pub fn row<I: RowIndex>(&self, index: &I) -> Oid {
        let mut parts = self.oid.to_vec();
        parts.extend(index.components());
        Oid::new(&parts)
    }

    /// The row that an instance belongs to; none for another object's instance or an index that cannot be.
    pub fn index_of<I: RowIndex>(&self, instance: &Oid) -> Option<I> {
        instance.strip_prefix(self.oid).and_then(I::decode)
    }

    /// The identifier of the whole column, where a walk of it starts.
    pub fn root(&self) -> Oid {
        Oid::new(self.oid)
    }
}
