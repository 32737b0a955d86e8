//! Delegations: granting, recall, return, revocation. (Signatures first.)
