//! A store that is being made when the power fails.

use millpond::{Db, Error, Options};
use millpond_base::rounds::rounds;
use millpond_device::{MemoryDevice, PowerSupply};

fn make(supply: &PowerSupply, page_size: u32) -> Result<(), Error> {
    let device = |name| supply.device(name, MemoryDevice::from_bytes(&[]));
    let db = Db::open_on_devices(device("data"), device("log"), options(page_size))?;
    db.raw_tree("tree")?.put(b"key", b"value")?;
    db.close()
}

fn options(page_size: u32) -> Options {
    Options::new().page_size(page_size).lab(|lab| lab.frames = Some(200))
}

/// Whatever the size of its pages: nobody has to remove by hand what the power left of it.
#[test]
fn a_store_whose_making_was_cut_off_is_made_anew() {
    for page_size in [4096, 8192, 16384, 32768, 65536] {
        for cut in 1.. {
            let supply = PowerSupply::new();
            supply.cut_at(cut);
            if make(&supply, page_size).is_ok() {
                assert!(cut > 10, "{cut} operations");
                break;
            }
            assert!(supply.is_off(), "{page_size}: operation {cut} failed by itself");
            for seed in 0..rounds(2, 6) {
                let (_power, images) = supply.images(seed);
                let (data, log) = (images[0].clone(), images[1].clone());
                let db = Db::open_on_devices(data, log, options(page_size))
                    .unwrap_or_else(|error| panic!("{page_size}, {cut}, {seed}: {error:#}"));
                let names = db.trees().unwrap();
                assert!(names.len() < 2, "{page_size}, {cut}, {seed}: {names:?}");
                db.close().unwrap();
            }
        }
    }
}
