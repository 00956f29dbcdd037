rollback to savepoint AQUEDUCT_INSIDE
