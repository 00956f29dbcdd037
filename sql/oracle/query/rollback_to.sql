rollback to savepoint AQUEDUCT_TURN
