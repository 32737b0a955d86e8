//! Tasks, timers and other threads.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_nfs_client::reactor::Reactor;

#[test]
fn tasks_that_borrow_run_side_by_side_and_return_in_order() {
    let reactor = Reactor::new().unwrap();
    let order = RefCell::new(Vec::new());
    let start = Instant::now();
    let one = async |number: u64| {
        reactor.sleep_until(start + Duration::from_millis(50 - 10 * number)).await;
        order.borrow_mut().push(number);
        number
    };
    let mut tasks: Vec<_> = (0..5).map(|number| Box::pin(one(number))).collect();
    assert_eq!(reactor.run_all(&mut tasks).unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(*order.borrow(), [4, 3, 2, 1, 0]);
    assert!(start.elapsed() >= Duration::from_millis(50));
}

#[test]
fn background_tasks_run_while_something_is_waited_for() {
    let reactor = Reactor::new().unwrap();
    let count = Rc::new(Cell::new(0));
    let (counting, inside) = (count.clone(), reactor.clone());
    reactor.spawn(async move {
        for _ in 0..3 {
            inside.sleep(Duration::from_millis(1)).await;
            counting.set(counting.get() + 1);
        }
    });
    reactor
        .block_on(async {
            while count.get() < 3 {
                reactor.yield_now().await;
            }
        })
        .unwrap();
    assert_eq!(Rc::strong_count(&count), 1, "its task was dropped at its end");
    let holding = count.clone();
    reactor.spawn(async move {
        std::future::pending::<()>().await;
        drop(holding);
    });
    reactor.block_on(reactor.yield_now()).unwrap();
    assert_eq!(Rc::strong_count(&count), 2);
    reactor.end_background();
    assert_eq!(Rc::strong_count(&count), 1);
}

#[test]
fn another_thread_can_wake_all_who_wait_for_it() {
    let reactor = Reactor::new().unwrap();
    let (remote, go) = (reactor.remote(), Arc::new(AtomicBool::new(false)));
    let seen = go.clone();
    let thread = std::thread::spawn(move || {
        // Woken for nothing at first.
        remote.wake();
        std::thread::sleep(Duration::from_millis(20));
        go.store(true, Ordering::Release);
        remote.wake();
    });
    let wait = async || {
        while !seen.load(Ordering::Acquire) {
            reactor.notified().await;
        }
    };
    let mut tasks: Vec<_> = (0..100).map(|_| Box::pin(wait())).collect();
    assert_eq!(reactor.run_all(&mut tasks).unwrap().len(), 100);
    thread.join().unwrap();
}

#[test]
fn what_takes_too_long_is_given_up() {
    let reactor = Reactor::new().unwrap();
    let at = Instant::now() + Duration::from_millis(10);
    let (late, early) = reactor
        .block_on(async {
            let late = reactor.until(at, std::future::pending::<()>()).await;
            let early = reactor.until(Instant::now() + Duration::from_secs(60), reactor.yield_now()).await;
            (late, early)
        })
        .unwrap();
    assert_eq!((late, early), (None, Some(())));
    assert!(Instant::now() >= at);
}

#[test]
fn two_reactors_of_a_thread_do_not_disturb_each_other() {
    let (first, second) = (Reactor::new().unwrap(), Reactor::new().unwrap());
    let done = Rc::new(Cell::new(false));
    let inside = done.clone();
    first.spawn(async move { inside.set(true) });
    second.block_on(second.sleep(Duration::from_millis(1))).unwrap();
    assert!(!done.get());
    first.block_on(first.yield_now()).unwrap();
    assert!(done.get());
    let nested = first.block_on(async { first.block_on(async {}).unwrap_err().to_string() });
    assert_eq!(nested.unwrap(), "a reactor was run from within one of its tasks");
}
