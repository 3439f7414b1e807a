//! Here are executions: which traces, operations, call trees and dependencies do they show?
