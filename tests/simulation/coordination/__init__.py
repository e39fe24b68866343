"""coordination: transactional programs and members of groups in ordinary seeds, and what must hold of them."""
