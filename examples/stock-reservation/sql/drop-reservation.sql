delete from SHOP_RESERVATIONS where ORDER_ID = :order
