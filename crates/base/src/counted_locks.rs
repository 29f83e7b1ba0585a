//! The standard library's locks, each acquisition of which is counted ([`crate::sections`]).

use std::sync::{LockResult, MutexGuard, RwLockReadGuard, RwLockWriteGuard, TryLockResult};

use crate::sections::{Section, note};

/// A mutex whose acquisitions are counted.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// As the standard library's.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// As the standard library's; counted.
    ///
    /// # Errors
    /// A thread panicked that held it.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let held = self.0.lock();
        note(Section::Mutex);
        held
    }

    /// As the standard library's; counted if it is acquired.
    ///
    /// # Errors
    /// It is held, or a thread panicked that held it.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let held = self.0.try_lock();
        if !matches!(held, Err(std::sync::TryLockError::WouldBlock)) {
            note(Section::Mutex);
        }
        held
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// A thread panicked that held it.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// A thread panicked that held it.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}

/// A lock for readers and writers whose acquisitions are counted.
#[derive(Debug, Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// As the standard library's.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(std::sync::RwLock::new(value))
    }

    /// As the standard library's; counted.
    ///
    /// # Errors
    /// A thread panicked that held it.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let held = self.0.read();
        note(Section::ReadLock);
        held
    }

    /// As the standard library's; counted.
    ///
    /// # Errors
    /// A thread panicked that held it.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let held = self.0.write();
        note(Section::WriteLock);
        held
    }

    /// As the standard library's; counted if it is acquired.
    ///
    /// # Errors
    /// It is held, or a thread panicked that held it.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let held = self.0.try_write();
        if !matches!(held, Err(std::sync::TryLockError::WouldBlock)) {
            note(Section::WriteLock);
        }
        held
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// A thread panicked that held it.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}
