insert into SHOP_RESERVATIONS (ORDER_ID, ITEM, QTY) values (:order, :item, :qty)
