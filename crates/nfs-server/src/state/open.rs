//! Opens and share reservations. (Signatures first.)
