rollback to MEMBER
