savepoint MEMBER
