//! The standard library's locks, each acquisition of which is counted ([`crate::sections`]).

use std::sync::{LockResult, MutexGuard, RwLockReadGuard, RwLockWriteGuard, TryLockResult};

use crate::sections::{Section, note};

/// Mutex whose acquisitions are counted.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Like the standard library's `new`.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Like the standard library's `lock`, and counted.
    ///
    /// # Errors
    /// A thread panicked that held it.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let held = self.0.lock();
        note(Section::Mutex);
        held
    }

    /// Like the standard library's `try_lock`; counted if it is acquired.
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

    /// Like the standard library's `into_inner`.
    ///
    /// # Errors
    /// A thread panicked that held it.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }

    /// Like the standard library's `get_mut`.
    ///
    /// # Errors
    /// A thread panicked that held it.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}

/// Reader-writer lock whose acquisitions are counted.
#[derive(Debug, Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Like the standard library's `new`.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(std::sync::RwLock::new(value))
    }

    /// Like the standard library's `read`, and counted.
    ///
    /// # Errors
    /// A thread panicked that held it.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let held = self.0.read();
        note(Section::ReadLock);
        held
    }

    /// Like the standard library's `write`, and counted.
    ///
    /// # Errors
    /// A thread panicked that held it.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let held = self.0.write();
        note(Section::WriteLock);
        held
    }

    /// Like the standard library's `try_write`; counted if it is acquired.
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

    /// Like the standard library's `get_mut`.
    ///
    /// # Errors
    /// A thread panicked that held it.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}
