//! How vendors' switches make their running configuration the one that they start with.
//!
//! No standard object does. Most have a table of copies to be made, of which a row is created that says *from running to
//! startup*; what becomes of it is a column of the same row, where there is one. Source: the vendors' MIBs, as scripts in
//! the field use them (`RADLAN-COPY-MIB`, `CISCOSB-COPY-MIB`, `CISCO-CONFIG-COPY-MIB`, `HH3C-CONFIG-MAN-MIB`,
//! `HUAWEI-CONFIG-MAN-MIB`, `FASTPATH-SWITCHING-MIB`); none has been tried on a switch.

/// How a switch's running state becomes the one that it starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveMethod {
    /// By the object of our own agent.
    Own,
    /// By a vendor's objects.
    Vendor(&'static VendorSave),
    /// Not by SNMP: an administrator saves, and a restart in the middle of a deployment is at their risk.
    ByHand,
    /// No way is known.
    Unknown,
}

/// A vendor's objects for saving.
#[derive(Debug, PartialEq, Eq)]
pub struct VendorSave {
    /// What model files and credentials call it.
    pub name: &'static str,
    /// Where its objects are.
    pub root: &'static [u32],
    /// Whether a row of a table is made for every copy, whose number follows the column's.
    pub row: Row,
    /// What is written, in one message: columns below `root` and their values.
    pub writes: &'static [(u32, i32)],
    /// The column that tells what becomes of it.
    pub progress: Option<CopyStatus>,
}

/// Whether objects are a table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A new row every time; its status column, by which it goes when all is done.
    Fresh {
        /// The status column.
        status: u32,
    },
    /// There is but one of each.
    Only,
}

/// A column that tells how a copy gets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyStatus {
    /// Which column.
    pub column: u32,
    /// Its value when all is well.
    pub done: i32,
    /// Its value when it went wrong.
    pub failed: i32,
}

const CREATE_AND_GO: i32 = 4;

/// Every vendor's way that is known.
pub const VENDOR_SAVES: &[VendorSave] = &[
    // From local (3 = 1) running (7 = 2) to local (8 = 1) startup (12 = 3).
    VendorSave {
        name: "radlan-copy",
        root: &[1, 3, 6, 1, 4, 1, 89, 87, 2, 1],
        row: Row::Fresh { status: 17 },
        writes: &[(3, 1), (7, 2), (8, 1), (12, 3), (17, CREATE_AND_GO)],
        progress: None,
    },
    VendorSave {
        name: "cisco-sb-copy",
        root: &[1, 3, 6, 1, 4, 1, 9, 6, 1, 101, 87, 2, 1],
        row: Row::Fresh { status: 17 },
        writes: &[(3, 1), (7, 2), (8, 1), (12, 3), (17, CREATE_AND_GO)],
        progress: None,
    },
    // From running (3 = 4) to startup (4 = 3); ccCopyState says 3, successful, or 4, failed.
    VendorSave {
        name: "cisco-copy",
        root: &[1, 3, 6, 1, 4, 1, 9, 9, 96, 1, 1, 1, 1],
        row: Row::Fresh { status: 14 },
        writes: &[(3, 4), (4, 3), (14, CREATE_AND_GO)],
        progress: Some(CopyStatus { column: 10, done: 3, failed: 4 }),
    },
    // running2Startup.
    VendorSave {
        name: "comware",
        root: &[1, 3, 6, 1, 4, 1, 25506, 2, 4, 1, 2, 4, 1],
        row: Row::Fresh { status: 9 },
        writes: &[(2, 1), (9, CREATE_AND_GO)],
        progress: None,
    },
    VendorSave {
        name: "huawei",
        root: &[1, 3, 6, 1, 4, 1, 2011, 6, 10, 1, 2, 4, 1],
        row: Row::Fresh { status: 9 },
        writes: &[(2, 1), (9, CREATE_AND_GO)],
        progress: None,
    },
    // agentSaveConfig, enable.
    VendorSave {
        name: "fastpath",
        root: &[1, 3, 6, 1, 4, 1, 4413, 1, 1, 1, 3],
        row: Row::Only,
        writes: &[(1, 1)],
        progress: None,
    },
    VendorSave {
        name: "fastpath-netgear",
        root: &[1, 3, 6, 1, 4, 1, 4526, 10, 1, 3],
        row: Row::Only,
        writes: &[(1, 1)],
        progress: None,
    },
];

impl SaveMethod {
    /// The method of this name; none if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "by-hand" => Some(Self::ByHand),
            _ => VENDOR_SAVES.iter().find(|save| save.name == name).map(Self::Vendor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_s_way_to_save_is_known() {
        let mut named = 0;
        for model in fabric::Model::built_in() {
            if let Some(save) = &model.save {
                assert!(SaveMethod::by_name(save).is_some(), "{}: {save}", model.name);
                named += 1;
            }
        }
        assert!(named > 5);
        assert_eq!(SaveMethod::by_name("radlan"), None);
    }
}
