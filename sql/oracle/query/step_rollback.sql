rollback to savepoint AQUEDUCT_STEP
