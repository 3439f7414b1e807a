//! The table of routes: path, need of a request, handler. [`Route::new`] takes the need, so that no route lacks a need.
//!
//! This file and `app.rs` use each other: handlers get the [`App`], which has the needs of all routes.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::routing::MethodRouter;

use super::app::App;

/// What a request needs to reach a handler, if the server has tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Health checks, the page and its login.
    Nothing,
    /// A token of any role.
    Token,
    Write,
    /// The role `read`. Answers are confined to the series of the token.
    Read,
    /// The role `read`, and a token without a selector, because the answer is about the whole store.
    ReadWhole,
    Admin,
}

pub struct Route {
    pub path: &'static str,
    /// Need of GET and HEAD, and need of the other methods.
    pub needs: (Need, Need),
    methods: MethodRouter<Arc<App>>,
}

impl Route {
    pub fn new(path: &'static str, need: Need, methods: MethodRouter<Arc<App>>) -> Self {
        Self { path, needs: (need, need), methods }
    }

    /// Sets the need of the methods other than GET and HEAD.
    #[must_use]
    pub fn change(self, need: Need) -> Self {
        Self { needs: (self.needs.0, need), ..self }
    }
}

pub struct Needs(HashMap<&'static str, (Need, Need)>);

impl Needs {
    pub fn of(routes: &[Route]) -> Self {
        Self(routes.iter().map(|route| (route.path, route.needs)).collect())
    }

    /// `path` is the path in the table, with placeholders. `None` if no route has this path.
    pub fn get(&self, path: &str, method: &Method) -> Option<Need> {
        let (read, change) = self.0.get(path)?;
        Some(if is_reading(method) { *read } else { *change })
    }
}

pub fn is_reading(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

pub fn merge(routes: Vec<Route>) -> Router<Arc<App>> {
    routes.into_iter().fold(Router::new(), |router, Route { path, methods, .. }| router.route(path, methods))
}
