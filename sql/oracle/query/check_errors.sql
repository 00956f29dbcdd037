select E.TYPE, E.NAME, E.LINE, E.POSITION, E.TEXT from USER_ERRORS E where E.ATTRIBUTE = 'ERROR' order by E.NAME, E.TYPE, E.SEQUENCE fetch first :ROWS_MAX rows only
